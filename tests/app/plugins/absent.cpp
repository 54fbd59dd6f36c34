// Library that needs_absent.cpp links, and that the loader does not find.

extern "C" int millraceAbsent()
{
    return 0;
}
