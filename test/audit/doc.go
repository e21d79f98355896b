// Package audit reads the audit log of an API server: which permissions service accounts have used,
// which requests were refused, and which permissions no request has used.
package audit
