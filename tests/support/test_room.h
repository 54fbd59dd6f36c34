// Test classes of one program. A program holds the tests of a room, and each class is a test of its
// own: `tst_plan plan_check [arguments of Qt Test]` runs the class of tst_plan_check.cpp.
//
// One program a room instead of one a class links a tenth as often.
//
// Threads  Registration happens before main().

#pragma once

#include <QObject>

#include <memory>

namespace mr::test {

enum class TestApp { None, Core, Widgets }; // the application object that a class runs under

// A whole program instead of a class, for tests that start themselves again with other arguments.
// Takes the arguments that follow the class's name; -1: they are for Qt Test.
using OtherMain = int (*)(int argc, char** argv);

struct TestClass {
    const char* file; // "tst_plan_check.cpp"
    TestApp app;
    std::unique_ptr<QObject> (*make)();
    OtherMain otherMain;
};

bool registerTestClass(const TestClass& testClass);

template <typename Class>
bool registerTest(const char* file, TestApp app, OtherMain otherMain)
{
    return registerTestClass(
        {file, app, [] { return std::unique_ptr<QObject>(std::make_unique<Class>()); }, otherMain});
}

} // namespace mr::test

// One of these ends a tst_*.cpp, before its .moc: the class runs without an application object,
// with a QCoreApplication, with a QApplication; or `otherMain` answers.
#define MR_TEST(Class) MR_TEST_OR_MAIN(Class, None, nullptr)
#define MR_TEST_WITH_APP(Class) MR_TEST_OR_MAIN(Class, Core, nullptr)
#define MR_TEST_WITH_WINDOWS(Class) MR_TEST_OR_MAIN(Class, Widgets, nullptr)
#define MR_TEST_OR_MAIN(Class, App, otherMain)                                                     \
    [[maybe_unused]] static const bool kRegistered =                                               \
        mr::test::registerTest<Class>(__FILE_NAME__, mr::test::TestApp::App, otherMain);
