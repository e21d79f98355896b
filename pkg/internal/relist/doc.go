// Package relist decides when a reflector must list its objects again.
//
// A watch that ends after the time that the operator has asked for continues from its last
// version. So does one that the API server ends early, if the API server still knows the last object that the watch
// has shown in that version. After any other end, another API server may answer, or the same one with the data of
// a backup. The versions can then be lower than the last one, and a watch would show nothing until
// they have overtaken it. So the objects are listed:
//
//	Run → reflector → Source.list, Source.watch → a store, with History
//	                    ↑ an interruption, as an error 410
//
// If other objects are selected, a list that is running goes on, and another one follows. Otherwise, selectors that change
// often enough would never let a list be complete.
//
// A list can be older than what the operator knows only if it belongs to another history of the
// cluster. History finds that.
//
// This package carries no compatibility promise.
package relist
