"""Methods: the functions of single objects, and those that change their object."""
