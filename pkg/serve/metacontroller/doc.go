// Package metacontroller runs the CompositeControllers and DecoratorControllers of Metacontroller,
// https://metacontroller.github.io/metacontroller, for kopf serve: their hooks get the same requests, and their answers
// have the same effects.
//
// Each parent has a daemon, which calls the hook and applies its answer, and then waits for a change of the parent, its
// children, or the related objects.
//
// This package carries no compatibility promise.
package metacontroller
