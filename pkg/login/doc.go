// Package login gets the connection of an operator to its cluster from login
// handlers, and keeps it: when the API server does not accept the credentials any
// longer, or before they expire, the handlers are asked again, and the requests
// that have met with it are repeated.
//
// An operator without login handlers does not need this: client-go by itself reads
// files with tokens and certificates again, and asks exec plugins for new
// credentials. Handlers are for credentials that come from elsewhere.
//
// # How it works
//
// A Vault has the connections that the handlers have returned, and picks the valid
// one of the highest priority for each request. All clients of the operator are
// made from one configuration, Vault.Config, whose transport asks the vault; they
// never learn that the connection below them is replaced, or leads elsewhere.
//
// A connection is given up when it expires, or when the API server answers 401 to
// it; the 401 must be confirmed by a question of our own, since other servers that
// the API server forwards requests to can answer so too, and the operator is not to
// lose its login for one of them. When none is left, the handlers are called: once
// for all requests that wait.
//
// # Invariants
//
// Nobody is hammered. Credentials that were rejected are not taken again for a
// minute; after a login that has brought nothing of use, the next one waits, from
// a second up to a minute, and until then all requests fail at once with an Error.
// The operator goes on trying, and recovers by itself.
//
// No credential is shown: not in the log, not in errors, and not by formatting a
// Connection.
//
// Specification: Authentication.
package login
