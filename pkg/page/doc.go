// Package page shows the objects of an operator in a browser: how many are in which state, and for each of them what the
// command explain says. It needs no running operator. A running one serves the same page, and also shows what only it knows.
//
//	browser → Page: guard → pages → templates
//	             ↓ look          ↑ rows, counts       ↑ explanations, on demand
//	          audience → resources → tables of rows  inspect
//
// What is decided about an object is decided by the package inspect, which makes the plans of the engine. Objects are
// watched, and resources discovered, only while the page is open. Of each object only a row is kept, at its place in the lists.
// Everything reads, except for requests (see Options.Writing), which are those of the commands.
//
// The guard lets a request in only if it comes from no other site. On the machine of a person, it must have the token of the
// page; in a cluster, a token of an account that may look.
//
// This package carries no compatibility promise.
package page
