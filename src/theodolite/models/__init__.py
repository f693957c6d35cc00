"""What answers queries: one model, or one provider's protocol, per module."""
