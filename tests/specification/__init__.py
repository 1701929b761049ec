"""What a user relies on, held through the one door alone."""
