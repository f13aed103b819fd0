#include <stdint.h>
#include <stddef.h>

/* CRC-16/CCITT-FALSE, polynomial 0x1021, as the engine's bus wants it. */
uint16_t crc16(const uint8_t *data, size_t length) {
    uint16_t crc = 0xffff;
    while (length--) {
        crc ^= (uint16_t)*data++ << 8;
        for (int bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    }
    return crc;
}
