"""What was expected where a record is bad, as a number; the words are in ``gaussfold.data.messages``."""

BAR, LABEL, WEIGHT, NO_BASE, VALUE, NAME, SMALLER, SCALE, INDEX, COLON, COLUMNS, QUOTE, CLASS = range(1, 14)
