// Package useless has no handlers.
package useless
