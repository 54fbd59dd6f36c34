// Settings of a test's own, so that none of a person's are read or written.
//
// Threads  The test's, before its first window.

#pragma once

#include <QCoreApplication>
#include <QLocale>
#include <QSettings>
#include <QString>

namespace mr::ui::test {

inline void keepSettingsIn(const QString& folder)
{
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder);
    QCoreApplication::setOrganizationName(QStringLiteral("millrace-test"));
    QLocale::setDefault(QLocale(QLocale::English));
}

} // namespace mr::ui::test
