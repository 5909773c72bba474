"""The leader's side: fetch sessions, and answering those who follow."""
