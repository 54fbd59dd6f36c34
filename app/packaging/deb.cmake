# The Debian package, for `cpack` in the build folder (app/package calls it). Its dependencies are
# those of the system it is built on, so apt takes it on that system.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME millrace)
set(CPACK_PACKAGE_VENDOR "The Millrace authors")
set(CPACK_PACKAGE_CONTACT "The Millrace authors <authors@millrace.invalid>") # there is no address
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(MR_WITH_CUDA)
    # The folders of cuBLASLt; no package need own it, and none becomes a dependency.
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES})
endif()
# Qt draws the icons by a plugin, which no program names as a library.
set(CPACK_DEBIAN_PACKAGE_DEPENDS libqt6svg6)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "qt6-wayland, qt6-translations-l10n, fonts-dejavu-core, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS fonts-noto-cjk)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "fine-tunes language models larger than the GPU's memory")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Millrace plans every byte and every copy of a training step before it
starts, shows what the device waits for while it trains, and keeps each
run in a history that can be opened, compared and resumed. A window and a
command line stand over one engine.

It needs a processor with AVX2, FMA and BMI2 (x86-64-v3: Intel from 2013
on, AMD from 2015 on), and says so on others. Nothing of NVIDIA's is in
the package: training on a card needs NVIDIA's driver and cuBLASLt, and
the program names what is missing.")
include(CPack)
