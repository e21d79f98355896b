// Package page shows the objects of an operator in a browser: how many are in which state, and for each of them what the
// command explain says. It needs no running operator.
//
//	browser → Page: guard → pages → templates
//	             ↓ look          ↑ rows, counts       ↑ explanations, on demand
//	          audience → watches → tables of rows    inspect
//
// What is decided about an object is decided by the package inspect, which makes the plans of the engine. Objects are
// watched only while somebody looks, and of each object only a row is kept. Everything reads, except for requests (see
// Options.Writing), which are those of the commands.
//
// The guard lets a request in only if it has the token of the page, and comes from no other site.
//
// This package carries no compatibility promise.
package page
