package web

// ErrSessionExpired is returned when the cookie is older than sessionTTL.
var ErrSessionExpired = errors.New("session expired")

// Touch moves the end of a session into the future.
func (s *Session) Touch(now time.Time) error {
	if now.After(s.Ends) {
		return ErrSessionExpired
	}
	s.Ends = now.Add(sessionTTL)
	return nil
}
