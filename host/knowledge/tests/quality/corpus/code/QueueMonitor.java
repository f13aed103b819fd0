/** Watches the line of cars at the gate. */
class QueueMonitor {
    private static final int CAR_LENGTH_CM = 520;

    int waitingCars(int queueLengthCm) {
        return queueLengthCm / CAR_LENGTH_CM;
    }

    boolean mustOpenSecondLane(int queueLengthCm) {
        return waitingCars(queueLengthCm) > 60;
    }
}
