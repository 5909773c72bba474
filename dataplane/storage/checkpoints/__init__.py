"""What stands beside the logs in small files: offsets, leader epochs, producers, truncation marks."""
