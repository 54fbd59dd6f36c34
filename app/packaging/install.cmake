# The places of `cmake --install`. The programs look for plugins in ../lib/millrace and for the
# sample in ../share/millrace from their own folder (app/plugin_file.h, app/compose.cpp), so a prefix
# may be moved as a whole.
set(programs millrace)
set(man_arguments $<TARGET_FILE:millrace>)
if(TARGET millrace-desktop)
    list(APPEND programs millrace-desktop)
    list(APPEND man_arguments $<TARGET_FILE:millrace-desktop>)
endif()
install(TARGETS ${programs} RUNTIME DESTINATION bin)
foreach(plugin IN ITEMS millrace_net millrace-cuda)
    if(TARGET ${plugin})
        # Without leave to execute: a program loads it.
        install(TARGETS ${plugin} LIBRARY DESTINATION lib/millrace
            PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    endif()
endforeach()

set(resources ${PROJECT_SOURCE_DIR}/resources)
install(DIRECTORY ${resources}/sample/model DESTINATION share/millrace/sample)
install(FILES ${resources}/sample/README.md ${resources}/sample/train.jsonl ${resources}/sample/eval.jsonl
    DESTINATION share/millrace/sample)

# A page a command, made anew when a program is.
set(man_folder ${CMAKE_BINARY_DIR}/man)
set(man_pages ${CMAKE_CURRENT_SOURCE_DIR}/packaging/man_pages)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man.stamp VERBATIM
    COMMAND ${man_pages} ${man_folder} ${man_arguments}
    COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/man.stamp
    DEPENDS ${programs} ${man_pages} ${CMAKE_CURRENT_SOURCE_DIR}/packaging/man_page.awk)
add_custom_target(man_pages ALL DEPENDS ${CMAKE_BINARY_DIR}/man.stamp)
install(DIRECTORY ${man_folder}/ DESTINATION share/man/man1)

# Debian asks of every package its licence, and what it was built from and when.
set(doc_folder ${CMAKE_BINARY_DIR}/doc)
string(TIMESTAMP changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC) # or SOURCE_DATE_EPOCH
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/packaging/changelog.in ${doc_folder}/changelog @ONLY)
execute_process(COMMAND gzip -9nf ${doc_folder}/changelog COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${doc_folder}/changelog.gz ${CMAKE_CURRENT_SOURCE_DIR}/packaging/copyright
    DESTINATION share/doc/millrace)

if(NOT TARGET millrace-desktop)
    return()
endif()
install(FILES ${resources}/millrace.desktop DESTINATION share/applications)
install(FILES ${resources}/millrace.metainfo.xml
    DESTINATION share/metainfo RENAME org.millrace.millrace.metainfo.xml) # as its id
install(FILES ${resources}/millrace.mime.xml DESTINATION share/mime/packages RENAME millrace.xml)

set(icon ${resources}/icons/millrace.svg)
set(icons share/icons/hicolor)
install(FILES ${icon} DESTINATION ${icons}/scalable/apps)
find_package(Qt6 6.4 REQUIRED COMPONENTS Gui Svg)
add_executable(icon_png packaging/icon_png.cpp)
set_target_properties(icon_png PROPERTIES
    AUTOMOC OFF RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(icon_png PRIVATE Qt6::Gui Qt6::Svg mr_options)
set(icon_files "")
foreach(pixels IN ITEMS 48 64 128 256)
    set(file ${CMAKE_BINARY_DIR}/icons/${pixels}.png)
    add_custom_command(OUTPUT ${file} VERBATIM
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/icons
        COMMAND icon_png ${icon} ${pixels} ${file}
        DEPENDS icon_png ${icon})
    install(FILES ${file} DESTINATION ${icons}/${pixels}x${pixels}/apps RENAME millrace.png)
    list(APPEND icon_files ${file})
endforeach()
add_custom_target(icon_files ALL DEPENDS ${icon_files})
