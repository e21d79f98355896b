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

// address is a flag with a place to listen at: "0.0.0.0:9090", ":9090".
type address string

// String is the address; empty: nowhere.
func (a *address) String() string { return string(*a) }

// Type names the value in the help.
func (a *address) Type() string { return "address" }

// Set takes an address with a port.
func (a *address) Set(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("it is no address with a port, such as 0.0.0.0:8080 or :8080")
	}
	*a = address(text)
	return nil
}

// endpoint is the flag with the place of the probes: an URL, or an address.
type endpoint struct {
	to   *settings.Health
	text string
}

// String is what was given.
func (e *endpoint) String() string { return e.text }

// Type names the value in the help.
func (e *endpoint) Type() string { return "endpoint" }

// Set takes a place. Without a path it is that of the settings.
func (e *endpoint) Set(text string) error {
	place := &url.URL{Host: text}
	if strings.Contains(text, "://") {
		var err error
		if place, err = url.Parse(text); err != nil {
			return fmt.Errorf("it is no URL: %w", err)
		}
		switch {
		case place.Scheme != "http":
			return fmt.Errorf("it is served by http, and not by %s", place.Scheme)
		case place.User != nil || place.RawQuery != "" || place.Fragment != "":
			return errors.New("it has more than an address and a path")
		}
	}
	if err := (*address)(&e.to.Address).Set(place.Host); err != nil {
		return err
	}
	if place.Path != "" {
		e.to.LivenessPath = place.Path
	}
	e.text = text
	return nil
}

// lifetime is a flag with a time in seconds, as Kopf has it, or with a unit.
type lifetime time.Duration

// String is the time with its units.
func (l *lifetime) String() string { return time.Duration(*l).String() }

// Type names the value in the help.
func (l *lifetime) Type() string { return "duration" }

// Set takes "90" and "1m30s".
func (l *lifetime) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		text += "s"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < time.Second {
		return errors.New("it is no time of at least a second, such as 60 or 10m")
	}
	*l = lifetime(parsed)
	return nil
}
