#include <string.h>
#include <stdlib.h>

/* Reads latitude from a GPGGA sentence: ddmm.mmmm to degrees. */
double gga_latitude(const char *field, char hemisphere) {
    double raw = atof(field);
    int degrees = (int)(raw / 100);
    double value = degrees + (raw - degrees * 100) / 60.0;
    return hemisphere == 'S' ? -value : value;
}
