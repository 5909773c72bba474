"""One function for each action: parameters to a service's arguments, its answer to the vendor's members. No rule stands here."""
