// Package settings has the configuration of an operator. The comment of each field has its
// unit and its default. The zero value of a field means the default, so a literal with two
// fields is complete.
//
// The settings also have the server for admission handlers, Admission.Server, because an
// operator can choose it at startup, as with Kopf.
//
// Specification: Configuration.
package settings
