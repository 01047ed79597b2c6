"""ALLURE's experiments: plan the runs, carry them out, and put their figures on a page."""
