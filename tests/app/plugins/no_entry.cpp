// A shared library that is no plugin.

extern "C" int millraceSomethingElse()
{
    return 1;
}
