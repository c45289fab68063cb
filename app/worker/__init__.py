"""What runs on the measuring machine: the agent, the measuring of each job kind, and the load client. It knows the server by HTTP only."""
