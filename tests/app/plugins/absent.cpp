// What needs_absent.cpp is linked with, and does not find when it is loaded.

extern "C" int millraceAbsent()
{
    return 0;
}
