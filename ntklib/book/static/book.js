// The book's own layer on the theme.
