package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/settings"
)

// listenAddress is a flag with an address to listen on: "0.0.0.0:9090", ":9090".
type listenAddress string

// String returns the address, or an empty string if it is not set.
func (a *listenAddress) String() string { return string(*a) }

// Type returns the name of the value in the help.
func (a *listenAddress) Type() string { return "address" }

// Set sets the address, which must have a port.
func (a *listenAddress) Set(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("expected an address with a port, such as 0.0.0.0:8080 or :8080")
	}
	*a = listenAddress(text)
	return nil
}

// livenessFlag is the flag with the endpoint of the probes: a URL or an address.
type livenessFlag struct {
	health *settings.Health
	text   string
}

// String returns the text that was set.
func (e *livenessFlag) String() string { return e.text }

// Type returns the name of the value in the help.
func (e *livenessFlag) Type() string { return "endpoint" }

// Set sets the endpoint. Without a path, the path of the settings stays.
func (e *livenessFlag) Set(text string) error {
	place := &url.URL{Host: text}
	if strings.Contains(text, "://") {
		var err error
		place, err = url.Parse(text)
		if err != nil {
			return fmt.Errorf("invalid URL: %w", err)
		}
		switch {
		case place.Scheme != "http":
			return fmt.Errorf("the probes are served over http, not %s", place.Scheme)
		case place.User != nil || place.RawQuery != "" || place.Fragment != "":
			return errors.New("expected only an address and a path")
		}
	}
	if err := (*listenAddress)(&e.health.Address).Set(place.Host); err != nil {
		return err
	}
	if place.Path != "" {
		e.health.LivenessPath = place.Path
	}
	e.text = text
	return nil
}

// lifetimeFlag is a flag with a duration in seconds, as in Kopf, or with a unit.
type lifetimeFlag time.Duration

// String returns the duration with its units.
func (l *lifetimeFlag) String() string { return time.Duration(*l).String() }

// Type returns the name of the value in the help.
func (l *lifetimeFlag) Type() string { return "duration" }

// Set parses durations such as "90" and "1m30s".
func (l *lifetimeFlag) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		text += "s"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < time.Second {
		return errors.New("expected a duration of at least a second, such as 60 or 10m")
	}
	*l = lifetimeFlag(parsed)
	return nil
}
