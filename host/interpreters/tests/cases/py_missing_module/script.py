try:
    import numpy
except ModuleNotFoundError as error:
    print(error.name)
import requests
