// Package login connects an operator to its cluster with credentials from login
// handlers. When the API server rejects the credentials, or before they expire, it calls
// the handlers again and repeats the requests that failed.
//
// An operator without login handlers does not need this package: client-go itself reads
// renewed tokens and certificates from files, and asks exec plugins for new credentials.
// Login handlers are for credentials from other sources. client-go's token sources cannot
// take their place: they replace bearer tokens only, not certificates or addresses, and
// they react to a 401 one request later instead of repeating the request.
//
// # How it works
//
// Credentials holds the connections that the handlers have returned, and picks the valid
// one of the highest priority for each request. All clients of the operator are made from
// one configuration, Credentials.Config, with a transport that asks Credentials. The
// clients never notice that the connection is replaced, or leads to another address.
//
// A connection is dropped when it expires, or when the API server responds to it with a
// 401. A request of this package must confirm the 401, because servers behind the API
// server can respond so, too, and must not cost the operator its login. When no connection
// is left, the handlers are called, once for all waiting requests.
//
// # Invariants
//
// No server is flooded with requests. Rejected credentials are not used again for a
// minute. After a login without usable credentials, the next login is delayed, by a second
// up to a minute, and until then all requests fail at once with an Error. The operator
// continues to try, and recovers by itself.
//
// No credentials are shown: not in the log, not in errors, and not by formatting a
// Connection.
//
// Specification: Authentication.
package login
