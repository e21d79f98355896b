// Package settings holds what can be tuned about an operator. Every field says
// its unit, its default and the reason for it; Default fills them all in, and a
// zero field means its default too, so that a literal with two fields works.
//
// Specification: Configuration.
package settings
