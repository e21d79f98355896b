// Package inspect answers questions about the objects of an operator, without a running one. A running operator can answer
// them, too, in its own process (Program.IsRunning).
//
// Explain says why handlers are called for an object or not, NewPlan what an operator would do
// with all objects, and Peers who pauses whom. It also writes the requests of people to objects
// (Send).
//
// Everything but Send only reads: see ReadOnly. What is decided about handlers comes from dry
// passes of the engine, so that there is no second copy of its rules.
//
// This package carries no compatibility promise.
package inspect
