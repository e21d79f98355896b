// Package access lets those read an endpoint of the operator whom the cluster
// permits it: who they are, a TokenReview tells, and what they may, a
// SubjectAccessReview.
//
// It does what a filter of controller-runtime does, with the client that every
// operator has anyway. That one brings the libraries of the API server along: they
// made the program twice as large, and cost an operator 12 MB of memory, with secure
// metrics or without.
package access
