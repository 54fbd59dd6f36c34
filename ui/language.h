// Language: which translation is installed; changing it while the program runs sends
// QEvent::LanguageChange to every widget.
//
// Threads  UI thread.

#pragma once

#include <QObject>
#include <QString>
#include <QTranslator>
#include <QVector>

namespace mr::ui {

class Language final : public QObject
{
    Q_OBJECT

public:
    struct Entry {
        QString code; // "en", "ja"
        QString name; // in the language itself, so that its readers find it
    };

    explicit Language(QObject* parent = nullptr);
    ~Language() override;

    static QVector<Entry> available();

    // An empty or unknown code means the language of the system, or English.
    void choose(const QString& code);
    QString code() const { return m_code; }

private:
    QString m_code;
    QTranslator m_own;
    QTranslator m_qt; // texts of Qt's own dialogs
};

} // namespace mr::ui
