"""What was learned, to use without the service: as a policy file, as rules, as SQL, as Python."""
