"""What the readers of conversations share: cutting, naming, telling; none of it knows a form."""
