// Package alerts tests the alerts and the dashboard in config/prometheus: whether each alert
// fires when it should, and not otherwise, and whether each query finds metrics that operators
// expose. testdata/scrape.prom has the metrics of a running operator; test/integration/health
// keeps it up to date.
package alerts
