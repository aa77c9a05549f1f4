/* What a model is told by its environment: bounds, and which wrong form is played. */
static int told(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}
