"""What watches a host framework: one framework per module, imported only where that framework is used."""
