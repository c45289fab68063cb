"""What stands between the network and the pages: headers, allowed hosts, same-origin. Sign-in comes in its own issue."""
