// ProgressLine: how far bytes are that are written or fetched: a bar, and below it the counts and
// the time left. Shown while something is at work.
//
// Threads  GUI.
// Units    Bytes.

#pragma once

#include <QElapsedTimer>
#include <QWidget>

#include <cstdint>

class QLabel;
class QProgressBar;

namespace mr::ui {

class ProgressLine final : public QWidget
{
    Q_OBJECT

public:
    // Named for screen readers.
    explicit ProgressLine(const QString& name, QWidget* parent = nullptr);

    void begin();
    // `more` follows the counts of bytes.
    void setDone(std::uint64_t done, std::uint64_t all, const QString& more = {});
    void end() { hide(); }

private:
    QProgressBar* m_bar;
    QLabel* m_text;
    QElapsedTimer m_begun;
};

} // namespace mr::ui
