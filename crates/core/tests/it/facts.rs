//! FACTS lines that need more than a case can say: the host's side of the API.
