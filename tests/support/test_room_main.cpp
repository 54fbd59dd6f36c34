// main() of every test program.

#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>
#ifdef QT_WIDGETS_LIB
#include <QApplication>
#endif

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace mr::test {

namespace {

std::vector<TestClass>& testClasses()
{
    static std::vector<TestClass> classes;
    return classes;
}

// "plan_check" of "tst_plan_check.cpp".
std::string_view nameOf(const TestClass& testClass)
{
    std::string_view name = testClass.file;
    name.remove_prefix(std::string_view("tst_").size());
    name.remove_suffix(std::string_view(".cpp").size());
    return name;
}

int runClass(const TestClass& testClass, int argc, char** argv)
{
    if (testClass.otherMain != nullptr)
        if (const int code = testClass.otherMain(argc, argv); code >= 0)
            return code;
    // User data of its own: rates that one class measures and keeps must not steer another's plans.
    const QTemporaryDir userData;
    qputenv("XDG_DATA_HOME", userData.path().toUtf8());
    const auto execute = [&] { return QTest::qExec(testClass.make().get(), argc, argv); };
    switch (testClass.app) {
    case TestApp::None:
        break;
    case TestApp::Core: {
        const QCoreApplication application(argc, argv);
        return execute();
    }
    case TestApp::Widgets: {
#ifdef QT_WIDGETS_LIB
        const QApplication application(argc, argv);
        return execute();
#else
        (void)std::fprintf(stderr, "this program is not linked with widgets\n");
        return 2;
#endif
    }
    }
    return execute();
}

int usage(const char* program)
{
    (void)std::fprintf(stderr, "%s CLASS [arguments of Qt Test]\nclasses:\n", program);
    for (const TestClass& each : testClasses())
        (void)std::fprintf(stderr, "  %s\n", std::string(nameOf(each)).c_str());
    return 2;
}

} // namespace

bool registerTestClass(const TestClass& testClass)
{
    testClasses().push_back(testClass);
    return true;
}

int runRoom(int argc, char** argv)
{
    for (const TestClass& each : testClasses())
        if (argc > 1 && nameOf(each) == argv[1]) {
            argv[1] = argv[0];
            return runClass(each, argc - 1, argv + 1);
        }
    return usage(argv[0]);
}

} // namespace mr::test

int main(int argc, char** argv)
{
    return mr::test::runRoom(argc, argv);
}
