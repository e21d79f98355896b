// Package conversion converts objects of a resource from one version to another by functions that
// users declare.
//
// A Declaration is one function, from one version to another. The declarations of one resource are
// the edges of a Graph: an object takes the shortest way from its version to the wanted one, so that
// a hub is not a concept, but a version that others lead to.
//
// A conversion changes what a version means, and never which object it is: kind, name, and all other
// metadata stay, apart from labels and annotations. The API server would restore or refuse a change
// of them without naming the object.
package conversion
