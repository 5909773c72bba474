"""Programs that use a cluster from outside, through its protocol only. Nothing of a broker imports them."""
