"""What is started: one module for each job."""
