"""What comes from other programs and goes to them: conversations as turns, saved turns as texts."""
