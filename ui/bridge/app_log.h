// AppLog: a log file beside the history. It holds the window's actions and Qt's messages, to find
// out later why something went wrong.
//
// Lines of runs and errors only: never a prompt, an answer or a row of data. A file that has grown
// beyond a mebibyte is put aside when the program starts; one older one is kept.
//
// Threads    Any thread may log; construct and destroy on the main thread, one at a time.
// Ownership  The open file. The destructor restores the previous message handler.
// Errors     A file that cannot be written is passed over: messages still go to the terminal.

#pragma once

#include <QString>
#include <QtGlobal>

#include <cstdint>

namespace mr::ui {

class AppLog
{
public:
    explicit AppLog(const QString& path);
    ~AppLog();
    AppLog(const AppLog&) = delete;
    AppLog& operator=(const AppLog&) = delete;

    // Not to the terminal.
    static void write(const QString& line);
    // The end of the file, whole lines, at most so many bytes of them.
    static QString tail(const QString& path, std::int64_t bytes);

private:
    static void take(QtMsgType type, const QMessageLogContext& context, const QString& message);

    int m_file = -1;
    QtMessageHandler m_before = nullptr;
};

} // namespace mr::ui
