"""Projects: memory that several people share. Rules without files or servers: who may do what, what goes there."""
