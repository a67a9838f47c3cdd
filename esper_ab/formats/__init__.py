"""Files of other tools become rows, before it is known what they mean. Workers may import it, too."""
