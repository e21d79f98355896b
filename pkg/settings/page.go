package settings

import "errors"

// Page configures the page of the operator in the cluster: its objects and handlers in a browser.
type Page struct {
	// Address is the address to listen at: ":8444". The page is served over HTTPS, and only to accounts that the cluster
	// allows to GET the path /page: they see all objects with handlers as the operator sees them, but no values of Secrets. It
	// requires the permissions to create token reviews and subject access reviews. Default: none.
	Address string
	// CertFile and KeyFile are the names of PEM files with the certificate. They are read again when they change. Default: a
	// self-signed certificate.
	CertFile, KeyFile string
}

func (p Page) validate() error {
	var problems []error
	if (p.CertFile == "") != (p.KeyFile == "") {
		problems = append(problems, errors.New("settings.Page needs either both CertFile and KeyFile, or none of them"))
	}
	if p.CertFile != "" && p.Address == "" {
		problems = append(problems, errors.New("settings.Page has a certificate, and no Address to serve it at"))
	}
	return errors.Join(problems...)
}
