"""What a scan saw, written for people and for machines. What a session said is inert in each of them."""
