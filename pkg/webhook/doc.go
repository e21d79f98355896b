// Package webhook answers the admission reviews of Kubernetes by the admission
// handlers of an operator.
//
// New makes an http.Handler of the handlers. Where it listens, with which
// certificates, and who tells the API server of it, is the business of others.
//
// # Paths
//
// Every handler has the path of its id, at which it alone is called: "/check", or
// "/check/spec.size" for a handler of a field. "/validating" calls all validations that
// are for the review, "/mutating" all mutations; "/" all of both. A review at an
// unknown path is not found, rather than admitted: it is for a handler that is not
// there any more, or not there yet.
//
// # One call
//
// The handlers of one review are called one after another, in the order of their
// declarations, mutations before validations. Each mutation sees what the earlier
// ones have made of the object, and the validations see what all of them have. All
// of them are called, even if one fails, for the error that the user gets is chosen
// by its kind: an AdmissionError before a permanent one, that before a temporary
// one, and that before any other; of one kind, the first. There are no retries. The
// patch is there only if nothing has failed.
//
// # Errors
//
// What the API server cannot have meant is answered with 400 and a sentence, a body
// that is too large with 413, a handler or a resource that is not known with 404. As
// long as the operator is not ready it answers 503, and the API server asks again. All
// else is an AdmissionReview, with the status 200; a panic of a handler is an error
// with the code 500, of that call alone.
//
// The text of a handler's error goes to the user who has sent the request, as Kopf has
// it; that of a panic, which nobody has written for users, only to the log. So what
// must not be known to users must not be in an error.
//
// # Trust
//
// Whoever reaches the listener can ask. A review tells the handlers what it likes of
// the user and of the object, and learns from the answer only what the handlers say.
// The memory that a review takes is bounded by the size of its body, and its time by
// the timeout that the API server names, at most 30 seconds.
//
// Specification: Admission control.
package webhook
